select lhs.id1, lhs.id2, lhs.id3, lhs.id4, lhs.id5, lhs.id6, lhs.v1, small.v2 from lhs join small on lhs.id1 = small.id1
