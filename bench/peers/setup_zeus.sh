#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs Zeus, as published, into build/peers/zeus, for bench/peers/compare_zeus.py to run beside ours.
#
# Zeus's package carries the simulator of its paper as zeus._legacy. Only what that simulator imports is
# installed with it (about 400 MB), at fixed versions, so that a result can be had again. Nothing outside
# build/ is touched. Status: 0 ready, 77 no package registry (or no venv module) here, 1 anything else.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(numpy==2.2.6 scipy==1.15.3 pandas==2.2.3 scikit-learn==1.6.1)
zeus=zeus==0.16.0
folder=build/peers/zeus
stamp=$folder/installed

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "${packages[*]} $zeus" ]; then
    echo "$zeus is in $folder"
    exit 0
fi

python=/usr/bin/python3
[ -x "$python" ] || python=python3
mkdir -p build/peers
log=$(mktemp build/peers/setup.XXXXXX)
trap 'rm -f "$log"' EXIT

rm -rf "$folder"
if ! "$python" -m venv "$folder" >"$log" 2>&1; then
    echo "skipped: $python makes no virtual environment (Debian: python3-venv): $(tail -n 1 "$log")"
    exit 77
fi

install() {
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --retries 1 --timeout 15 "$@" >>"$log" 2>&1
}

# Zeus first: it is small, so a missing registry shows at once.
for arguments in "--no-deps $zeus" "${packages[*]}"; do
    # shellcheck disable=SC2086 # several arguments
    install $arguments && continue
    if grep -qE 'from versions: none|Retrying|ConnectionError|Timeout' "$log"; then
        echo "skipped: no package registry answers for $arguments"
        exit 77
    fi
    echo "setup_zeus.sh: pip could not install $arguments:" >&2
    tail -n 5 "$log" >&2
    exit 1
done

"$folder/bin/python" -c 'import zeus._legacy.simulate'
echo "${packages[*]} $zeus" >"$stamp"
echo "$zeus is in $folder"
