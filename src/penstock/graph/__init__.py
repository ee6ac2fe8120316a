"""Who is near whom: spanning trees, neighbour graphs and the similarities made from them."""
