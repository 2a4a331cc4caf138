select id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, bidder, price, bid_at
from (
    select a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires, a.seller, a.category, b.bidder, b.price, b.date_time as bid_at,
        row_number() over (partition by a.id order by b.price desc, b.date_time) as place
    from bid b join auction a on b.auction = a.id and b.date_time >= a.date_time and b.date_time <= a.expires
) as bids
where place = 1
