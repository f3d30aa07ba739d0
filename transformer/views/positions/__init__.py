"""How does the network know where a token is?"""
