#!/bin/sh
# Rows per second, peak memory and utilisation by preset and variant, beside BERTScore with the same encoder, as one
# JSON file. Less than ten minutes on a GPU:
#
#     sh benchmarks/gpu.sh gpu.json
#
# On a CPU with few rows: ROWS=2 PRESETS=mini sh benchmarks/gpu.sh gpu.json
set -eu
out=${1:-gpu.json}
python=${PYTHON:-python}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for preset in ${PRESETS:-mini medium}; do
    for variant in ${VARIANTS:-fast plus paper}; do
        # A process each, so that memory is that of one variant.
        timeout 180 "$python" -m benchmarks.rates --json --presets "$preset" --variants "$variant" \
            --rows "${ROWS:-512}" --repeats 1 --sentences 9 --dtype "${DTYPE:-float32}" >>"$lines" ||
            printf '{"failed": "%s %s", "status": %s}\n' "$preset" "$variant" $? >>"$lines"
    done
done
"$python" -c '
import json, platform, sys, torch
device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
print(json.dumps({"device": device, "torch": torch.__version__, "figures": list(map(json.loads, sys.stdin))}, indent=1))
' <"$lines" >"$out"
