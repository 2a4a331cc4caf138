select cast(date_time as date) as day, count(*) as total_bids,
    count(case when price < 10000 then 1 end) as rank1_bids, count(case when price >= 10000 and price < 1000000 then 1 end) as rank2_bids,
    count(case when price >= 1000000 then 1 end) as rank3_bids,
    count(distinct bidder) as total_bidders, count(distinct case when price < 10000 then bidder end) as rank1_bidders,
    count(distinct case when price >= 10000 and price < 1000000 then bidder end) as rank2_bidders,
    count(distinct case when price >= 1000000 then bidder end) as rank3_bidders,
    count(distinct auction) as total_auctions, count(distinct case when price < 10000 then auction end) as rank1_auctions,
    count(distinct case when price >= 10000 and price < 1000000 then auction end) as rank2_auctions,
    count(distinct case when price >= 1000000 then auction end) as rank3_auctions
from bid
group by cast(date_time as date)
