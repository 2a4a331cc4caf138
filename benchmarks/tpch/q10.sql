select c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, nation
where c_custkey = o_custkey and l_orderkey = o_orderkey and c_nationkey = n_nationkey and l_returnflag = 'R'
    and o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01'
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc, c_custkey
limit 20
