with marked as (select auction, bidder, price, date_time, $micros - $micros % 10000000 as start from bid)
select b.auction, b.bidder, b.price, b.date_time
from marked b join (select start, max(price) as highest from marked group by start) m on b.start = m.start and b.price = m.highest
