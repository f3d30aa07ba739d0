"""How do two runs differ?"""
