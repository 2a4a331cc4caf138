with spread as (
    select auction, $micros - $micros % 2000000 - slide * 2000000 as start
    from bid cross join (select 0 as slide union all select 1 as slide union all select 2 as slide union all select 3 as slide union all select 4 as slide) as slides
),
counts as (select auction, start, count(*) as num from spread group by auction, start)
select c.auction, c.num, $moment as start
from counts c join (select start as of_window, max(num) as most from counts group by start) m on c.start = m.of_window and c.num = m.most
