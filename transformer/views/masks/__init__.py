"""What may a token read?"""
