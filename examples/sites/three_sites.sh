#!/usr/bin/env bash
# Three sites on this machine, from tables to a model and an audit: examples/sites/three_sites.sh [PROGRAM]
# PROGRAM is a laconic with the feature sites (cargo build --release --features sites). Each site has a folder of its own, as if it were a
# machine; nobody ever holds the whole graph.
set -euo pipefail
laconic=$(realpath "${1:-target/release/laconic}")
cd "$(mktemp -d)"
echo "in $PWD"
port=$((20000 + RANDOM % 20000))
sites=(north south west)
mkdir "${sites[@]}"

# Made-up tables of three hospitals: 3,000 patients with an outcome and three columns that say a little of it, and 15,000 referrals, four
# fifths of them between patients of one outcome. Where a referral crosses, both hospitals have it, each with its own patient's bare number.
awk 'BEGIN {
  srand(1); split("north south west", site, " "); split("home ward icu", outcome, " ")
  for (s in site) {
    print "patient,age,pulse,smoker,outcome" > (site[s] "/patients.csv")
    print "from,to" > (site[s] "/referrals.csv")
  }
  for (i = 0; i < 3000; i++) {
    of[i] = site[i % 3 + 1]; class[i] = int(3 * rand())
    printf "%d,%d,%.1f,%s,%s\n", i, 50 + 9 * class[i] + 30 * rand(), 70 + 8 * (class[i] == 2) + 20 * rand(),
      rand() < 0.4, outcome[class[i] + 1] > (of[i] "/patients.csv")
  }
  for (e = 0; e < 15000; e++) {
    a = int(3000 * rand())
    do b = int(3000 * rand()); while (a == b || (class[a] != class[b] && rand() < 0.8))
    printf "%d,%s\n", a, of[b] == of[a] ? b : of[b] "/" b > (of[a] "/referrals.csv")
    if (of[a] != of[b]) printf "%s,%d\n", of[a] "/" a, b > (of[b] "/referrals.csv")
  }
}'

# All sites, once: what columns, classes and ids mean.
cat >schema.toml <<'TOML'
version = 1
name = "hospitals"
sites = ["north", "south", "west"]
[nodes]
id = "patient"
label = { column = "outcome", classes = ["home", "ward", "icu"] }
split = { train = 0.5, val = 0.2, seed = 1 }
features = [
  { column = "age", number = { mean = 74, sd = 12 } },
  { column = "pulse", number = { mean = 83, sd = 7 } },
  { column = "smoker", flag = true },
]
[edges]
source = "from"
target = "to"
symmetrise = true
TOML

# Each site, once: its part, a key that stays, and a card for the others.
for k in 0 1 2; do
  site=${sites[k]}
  "$laconic" part build "$site/patients.csv" "$site/referrals.csv" --schema schema.toml --site "$site" --out "$site/part"
  "$laconic" site init "$site" --keys "$site/keys" --address "127.0.0.1:$((port + k))"
done

# One person, once: what all are to run.
cat >run.toml <<'TOML'
[data]
path = "each site's own"
[partition]
parts = 3
[train]
epochs = 90
sync_every = 30
eval_every = 30
lr = 0.01
[schedule]
kind = "lazy"
start = "mlp"
[messages]
forward = { codec = "quantised", bits = 4 }
parameters = { codec = "quantised", bits = 8 }
TOML
cards=(--site north.site.toml --site south.site.toml --site west.site.toml)
agreed=$("$laconic" agree run.toml "${cards[@]}")
echo "$agreed"
digest=$(sed -n 's/^digest //p' <<<"$agreed")

# Each site's own: class scores may cross, features and labels may not.
cat >policy.toml <<'TOML'
version = 1
[[allow]]
to = "*"
content = ["ids", "counts", "models", "gradients", "class_scores"]
[[accept]]
from = "*"
content = ["ids", "counts", "models", "gradients", "class_scores"]
TOML

# Each site, once a run. The first one is watched here; the others write to a file.
join() {
  "$laconic" join run.contract.json --data "$1/part" --keys "$1/keys" --policy policy.toml --out "$1/run" --approve "$digest" --threads 1
}
join south >south/said 2>&1 &
join west >west/said 2>&1 &
join north
wait

# Anybody: what one says it sent is what the other says it got.
"$laconic" audit run.contract.json {north,south,west}/run/audit.jsonl
