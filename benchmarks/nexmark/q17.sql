select auction, cast(date_time as date) as day, count(*) as total_bids,
    count(case when price < 10000 then 1 end) as rank1_bids, count(case when price >= 10000 and price < 1000000 then 1 end) as rank2_bids,
    count(case when price >= 1000000 then 1 end) as rank3_bids,
    min(price) as min_price, max(price) as max_price, avg(price) as avg_price, sum(price) as sum_price
from bid
group by auction, cast(date_time as date)
