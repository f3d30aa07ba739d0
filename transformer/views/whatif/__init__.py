"""What changes if a part of the network is changed?"""
