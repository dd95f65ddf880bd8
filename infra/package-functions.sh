#!/usr/bin/env bash
# Make the packages of the function apps, dist/functions/NAME.zip, from the wheel in dist/.
#
#   make wheel && PYTHON=python3.11 infra/package-functions.sh
#
# Each package holds everything that its app needs, compiled: the platform installs nothing and cannot write what Python
# compiles. So it has to be made by the Python that runs there, with wheels for a system as old as the one there.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
version=3.11
[[ $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') == "$version" ]] ||
  { echo "$python is not Python $version, on which the function apps run" >&2; exit 2; }
wheels=(dist/*.whl)
[[ ${#wheels[@]} == 1 && -e ${wheels[0]} ]] || { echo "there has to be one wheel in dist/: make wheel" >&2; exit 2; }

made=dist/functions
shared=$made/shared/.python_packages/lib/site-packages
rm -rf "$made"
install() { "$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$shared" "$@"; }
install --require-hashes --requirement requirements/functions.txt --only-binary :all: --implementation cp \
  --python-version "$version" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
  --platform manylinux_2_17_x86_64 --platform manylinux_2_12_x86_64
install --no-deps --upgrade "${wheels[0]}"
rm -r "${shared:?}/bin"
# Not looked at again: a package is never changed after it is made.
"$python" -m compileall -q --invalidation-mode unchecked-hash "$shared"

for app in functions/*/; do
  name=$(basename "$app")
  cp -r "$made/shared" "$made/$name"
  cp "$app/function_app.py" "$app/host.json" "$made/$name/"
  (cd "$made/$name" && "$python" -m zipfile --create "../$name.zip" .python_packages function_app.py host.json)
  rm -r "${made:?}/$name"
  echo "$made/$name.zip" >&2
done
rm -r "$made/shared"
