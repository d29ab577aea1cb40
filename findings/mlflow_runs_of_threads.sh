#!/usr/bin/env bash
# mlflow 3.17.2: `mlflow.log_metric` on another thread does not see the run that `mlflow.start_run` has begun.
#
# Libraries call back from threads of their own. There a function of MLflow's begins a second run without a word, which
# nobody ends: the figures are in a run that stays RUNNING, and the one that the user began has none. Seen, as
# "is it the run that was begun, status, figures":
#   False RUNNING {'loss': 0.5}
#   True FINISHED {}
# `MlflowClient().log_metric(run_id, ...)` goes to the run that it is told, on any thread.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mlflow==3.17.2
cd "$folder"
cat > threads.py <<'PYTHON'
import threading

import mlflow

mlflow.set_tracking_uri("file:./runs")
mlflow.set_experiment("threads")
with mlflow.start_run() as run:
    other = threading.Thread(target=mlflow.log_metric, args=("loss", 0.5))
    other.start()
    other.join()
found = mlflow.MlflowClient().search_runs([run.info.experiment_id])
for one in sorted(found, key=lambda one: one.info.run_id == run.info.run_id):
    print(one.info.run_id == run.info.run_id, one.info.status, one.data.metrics)
PYTHON
seen=$(MLFLOW_ALLOW_FILE_STORE=true "$folder/venv/bin/python" threads.py 2>/dev/null)
echo "$seen"
expected="False RUNNING {'loss': 0.5}
True FINISHED {}"
[ "$seen" = "$expected" ] || { echo "expected: $expected"; exit 1; }
