select auction, bidder, price, channel, url, date_time
from (select *, row_number() over (partition by bidder, auction order by date_time desc) as place from bid) as bids
where place = 1
