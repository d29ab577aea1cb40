"""Holds the manifests here to the schemas of what reads them: every field is known there, and has its type.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install kubeflow-trainer-api pyyaml && /tmp/v/bin/python check.py
"""

import pathlib
import sys

import yaml
from kubeflow_trainer_api import models

# MPIJob v2beta1 (kubeflow/mpi-operator, manifests/base/kubeflow.org_mpijobs.yaml), beside its pods.
RUN_POLICY = {"activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "managedBy", "schedulingPolicy", "suspend",
              "ttlSecondsAfterFinished"}
SPEC = {"launcherCreationPolicy", "mpiImplementation", "mpiReplicaSpecs", "runLauncherAsWorker", "runPolicy", "slotsPerWorker",
        "sshAuthMountPath"}
REPLICA = {"replicas", "restartPolicy", "template"}


def known(model, given):
    """A document is what its model makes of it, so no field was passed over."""
    lost = [path for path in leaves(given) if path not in dict(leaves(model.from_dict(given).to_dict()))]
    assert not lost, f"{model.__name__} does not know {lost}"


def leaves(value, path=()):
    """The paths of all plain values in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {path: value}
    found = {}
    for name, inner in items:
        found.update(leaves(inner, (*path, name)))
    return found


def mpi_job(job):
    """The fields of an MPIJob by hand, since no package has them, and its pods by their model."""
    spec = job["spec"]
    assert set(spec) <= SPEC and set(spec["runPolicy"]) <= RUN_POLICY, set(spec) | set(spec["runPolicy"])
    assert spec["mpiImplementation"] in ("OpenMPI", "Intel", "MPICH")
    assert set(spec["mpiReplicaSpecs"]) == {"Launcher", "Worker"}
    for replica in spec["mpiReplicaSpecs"].values():
        assert set(replica) <= REPLICA, set(replica)
        known(models.IoK8sApiCoreV1PodTemplateSpec, replica["template"])


KINDS = {
    "MPIJob": mpi_job,
    "ClusterTrainingRuntime": lambda found: known(models.TrainerV1alpha1ClusterTrainingRuntime, found),
    "TrainJob": lambda found: known(models.TrainerV1alpha1TrainJob, found),
}


def main():
    here = pathlib.Path(__file__).parent
    for path in sorted(here.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            KINDS[document["kind"]](document)
            print(f"{path.name}: {document['kind']}")


if __name__ == "__main__":
    sys.exit(main())
