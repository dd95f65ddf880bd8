"""The pages: what people look at and decide on in a browser."""
