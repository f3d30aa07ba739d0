"""What happens to one token on its way through the network?"""
