#!/bin/bash
# Trains under Slurm, a worker a task, and goes on by itself where a time limit has ended it.
#   sbatch slurm.sh RUN.toml runs/job
#SBATCH --job-name=laconic
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=00:30:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@60
# ^ A minute before the limit each process of the step is asked to end: it ends its round and writes a checkpoint. A round
#   that takes longer than that, and the 30 s that the limit leaves, needs a larger number.
run=${1:?a configuration} out=${2:?a folder that all machines see}

# How srun tells processes of each other: pmix for Open MPI, pmi2 for MPICH. Without either each would be alone, and the
# program refuses that.
pmi=${PMI:-pmix}
# Slurm binds each task to its --cpus-per-task, and the program takes what it is bound to.
if [[ -e $out/checkpoint.safetensors ]]; then
  srun --mpi="$pmi" laconic resume "$out"
else
  srun --mpi="$pmi" laconic train "$run" --out "$out" --set transport.kind=mpi --set out.checkpoint_every=20
fi
code=$?
# 130: asked to end before it was done. srun says the largest code of all tasks.
if ((code == 130)) && [[ -e $out/checkpoint.safetensors ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
