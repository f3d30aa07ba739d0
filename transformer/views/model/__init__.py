"""What is this network made of?"""
