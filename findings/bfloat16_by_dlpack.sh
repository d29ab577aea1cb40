#!/usr/bin/env bash
# NumPy 2.5.5, PyTorch 2.15.0, ml_dtypes 0.6.0: DLPack, which has a code for bfloat16, does not carry it between them.
#
# Both know the type, NumPy by ml_dtypes, and both exchange other types by DLPack without a copy. Seen:
#   numpy.from_dlpack(torch tensor)        BufferError
#   torch.from_dlpack(ml_dtypes array)     BufferError
#   the same bytes viewed as uint16        both ways, without a copy
# So a library that takes bfloat16 from NumPy and from PyTorch has to take it as uint16 and be told what it is.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# NumPy 2.5 needs Python 3.12.
for python in python3.14 python3.13 python3.12 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && break
done
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.5.5 ml_dtypes==0.6.0 torch==2.15.0
cat > "$folder/bfloat16.py" <<'PYTHON'
import ml_dtypes
import numpy as np
import torch


def said(work):
    try:
        work()
        return "done"
    except Exception as error:
        return type(error).__name__


tensor = torch.ones(2, dtype=torch.bfloat16)
array = np.ones(2, dtype=ml_dtypes.bfloat16)
print("numpy.from_dlpack", said(lambda: np.from_dlpack(tensor)))
print("torch.from_dlpack", said(lambda: torch.from_dlpack(array)))
lent = np.from_dlpack(tensor.view(torch.uint16)).view(ml_dtypes.bfloat16)
tensor[0] = 3
print("as uint16", float(lent[0]))
back = torch.from_dlpack(array.view(np.uint16)).view(torch.bfloat16)
array[1] = 5
print("and back", float(back[1]))
PYTHON
seen=$("$folder/venv/bin/python" "$folder/bfloat16.py")
echo "$seen"
expected="numpy.from_dlpack BufferError
torch.from_dlpack BufferError
as uint16 3.0
and back 5.0"
[ "$seen" = "$expected" ] || { echo "expected: $expected"; exit 1; }
