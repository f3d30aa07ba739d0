"""Which tokens does each head read?"""
