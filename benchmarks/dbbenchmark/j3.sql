select lhs.id1, lhs.id2, lhs.id3, lhs.id4, lhs.id5, lhs.id6, lhs.v1, medium.v2 from lhs left join medium on lhs.id2 = medium.id2
