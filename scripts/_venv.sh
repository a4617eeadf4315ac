# Sourced by the other scripts: makes .venv with this project and the extras in $1, and leaves `$python` behind.
# Safe to run at once from several shells, and again at any time: it installs only when something changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n       %s\n' "$1" "$2" >&2
    exit 3
}

venv=${STEPLADDER_VENV:-$PWD/.venv}
for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        base=$candidate
        break
    fi
done
[ -n "${base:-}" ] || fail "no Python 3.11 or later was found" "install one, or name it: PYTHON=/path/to/python3 $0"

mkdir -p "$venv" 2>/dev/null && [ -w "$venv" ] ||
    fail "$venv cannot be written to by $(id -un)" "take a checkout of your own, or set STEPLADDER_VENV to another folder"
exec 9>"$venv/.lock"
command -v flock >/dev/null && flock 9
python=$venv/bin/python
wanted="$(cksum pyproject.toml) $("$base" --version)"
if [ ! -x "$python" ] || [ "$(cat "$venv/.installed.$1" 2>/dev/null)" != "$wanted" ]; then
    printf 'installing into %s\n' "$venv" >&2
    "$base" -m venv "$venv" || fail "the virtual environment could not be made" "on Debian: apt-get install python3-venv"
    "$python" -m pip install --quiet --disable-pip-version-check --upgrade pip ||
        fail "pip cannot reach a package index" "check the network, or your pip configuration"
    "$python" -m pip install --quiet --disable-pip-version-check --editable ".[$1]" ||
        fail "the project could not be installed" "read what pip said above"
    printf '%s' "$wanted" >"$venv/.installed.$1"
fi
exec 9>&-
