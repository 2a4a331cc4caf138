select id4, id5, median(v3) as median_v3, $variance(v3) as variance_v3 from x group by id4, id5
