select b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time as auction_at, a.expires, a.seller
from bid b join auction a on b.auction = a.id
where a.category = 10
