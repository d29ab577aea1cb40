#!/usr/bin/env bash
# Three sites on this machine, from nothing to a model and an audit: examples/sites/three_sites.sh [PROGRAM]
# PROGRAM is a laconic with the feature sites (cargo build --release --features sites). Each site has a folder of its own, as if it were a machine.
set -euo pipefail
laconic=$(realpath "${1:-target/release/laconic}")
cd "$(mktemp -d)"
echo "in $PWD"
port=$((20000 + RANDOM % 20000))
sites=(north south west)

# Who has the graph cuts it; each site gets its part.
"$laconic" data synth sbm --nodes 3000 --classes 4 --features 32 --out graph.npz --quiet
"$laconic" partition graph.npz --parts 3 --out parts --quiet

# Each site, once: a key that stays, and a card for the others.
for k in 0 1 2; do
  mkdir -p "${sites[k]}/part"
  cp parts/meta.json "${sites[k]}/part/"
  mv "parts/part-$k" "${sites[k]}/part/"
  "$laconic" site init "${sites[k]}" --keys "${sites[k]}/keys" --address "127.0.0.1:$((port + k))" --quiet
done

# One person, once: what all are to run.
cat >run.toml <<'TOML'
[data]
path = "each site's own"
[partition]
parts = 3
[train]
epochs = 60
sync_every = 20
eval_every = 20
[schedule]
kind = "lazy"
start = "mlp"
[messages]
forward = { codec = "quantised", bits = 4 }
parameters = { codec = "quantised", bits = 8 }
TOML
"$laconic" agree run.toml --site north.site.toml --site south.site.toml --site west.site.toml
digest=$("$laconic" agree run.toml --site north.site.toml --site south.site.toml --site west.site.toml --json --quiet |
  sed -n 's/.*"digest": *"\(blake3:[0-9a-f]*\)".*/\1/p')

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
