select category, avg(final) as average
from (
    select a.id, a.category, max(b.price) as final
    from bid b join auction a on b.auction = a.id and b.date_time >= a.date_time and b.date_time <= a.expires
    group by a.id, a.category
) as winning
group by category
