# Sourced by the test scripts: in CI, as root on Debian, installs the programs that tests need. Elsewhere tests that
# lack one are skipped with the reason.
missing=$(for program in chromium openssl; do command -v "$program" >/dev/null || echo "$program"; done)
if [ -n "${CI:-}" ] && [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq $missing >/dev/null
fi
