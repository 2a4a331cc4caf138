select lhs.id1, lhs.id2, lhs.id3, lhs.id4, lhs.id5, lhs.id6, lhs.v1, big.v2 from lhs join big on lhs.id3 = big.id3
