"""A small bank in KuzuDB or its successor LadybugDB, and what COPY writes of it: `bank.py kuzu|ladybug`."""
import importlib
import sys

name = sys.argv[1]
module = importlib.import_module(name)
bank = module.Connection(module.Database(name + ".db"))
bank.execute("create node table acc(id string, primary key(id))")
bank.execute("create rel table pays(from acc to acc, amount double)")
for i in range(6):
    bank.execute(f"create (:acc {{id: 'a{i}'}})")
for i in range(6):
    bank.execute(f"match (a:acc), (b:acc) where a.id = 'a{i}' and b.id = 'a{(i * 2 + 1) % 6}' "
                 f"create (a)-[:pays {{amount: {i + 0.25}}}]->(b)")
PAYS = "match (a:acc)-[r:pays]->(b:acc) return "
bank.execute(f"copy ({PAYS}a.id, b.id) to '{name}_ends.csv' (header=true)")
bank.execute(f"copy ({PAYS}a.id, b.id) to '{name}_bare.csv'")
bank.execute(f"copy ({PAYS}a.id, r.amount, b.id) to '{name}_pays.csv' (header=true)")
bank.execute(f"copy ({PAYS}a.id, r.amount, b.id) to '{name}_pays.parquet'")
