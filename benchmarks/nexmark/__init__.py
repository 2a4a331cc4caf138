"""Nexmark: persons, auctions and bids of an auction house, and questions about them."""
