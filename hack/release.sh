#!/usr/bin/env bash
# Builds all that a release publishes: croft's archives, the container image and its bill of
# materials, the chart, a krew manifest, a Homebrew formula, checksums. `make release` calls
# it and says what the variables are. The same commit makes the same files, to the bit.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${REPOSITORY:?}" "${PLATFORMS:?}" "${DIST:?}"
[[ ${VERSION:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { printf 'release: VERSION="%s": write VERSION=vMAJOR.MINOR.PATCH, or SNAPSHOT=1\n' "${VERSION:-}" >&2; exit 2; }
go=${GO:-go}
work=$PWD/bin/release
rm -rf "$work" "$DIST"
mkdir -p "$work/common/completions" "$DIST"

binaries=() images=()
for platform in $PLATFORMS; do
  os=${platform%/*} arch=${platform#*/}
  printf '==> croft %s for %s\n' "$VERSION" "$platform" >&2
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOGC=400 $go build -buildvcs=false \
    -ldflags "-s -w -X croft.dev/croft/internal/declare/version.Version=$VERSION" -o "$work/croft-$os-$arch" ./cmd/croft
  binaries+=("$platform=$work/croft-$os-$arch")
  if [ "$os" = linux ]; then images+=("$arch=$work/croft-$os-$arch"); fi
done

# What every archive has beside the binary. kubectl asks kubectl_complete-croft for completions.
cp LICENSE README.md CHANGELOG.md "$work/common/"
printf '#!/usr/bin/env sh\nexec kubectl croft __complete "$@"\n' > "$work/common/kubectl_complete-croft"
chmod 755 "$work/common/kubectl_complete-croft"
bin/croft completion bash > "$work/common/completions/croft.bash"
bin/croft completion fish > "$work/common/completions/croft.fish"
bin/croft completion zsh > "$work/common/completions/_croft"
bin/croft completion powershell > "$work/common/completions/croft.ps1"
# The man pages and Helm's archives have this time.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
$go run ./hack/man -version "$VERSION" -o "$work/common/man"

printf '==> image and chart\n' >&2
root=$($go env GOROOT)
(cd hack/image && $go run . -o "$DIST/croft-image.tar" -zoneinfo "$root/lib/time/zoneinfo.zip" -name "croft:$VERSION" \
  -version "$VERSION" "${images[@]}") > "$work/image-digest"
bin/helm package charts/croft --version "${VERSION#v}" --app-version "$VERSION" --destination "$DIST" >/dev/null

$go run ./hack/release -o "$DIST" -version "$VERSION" -repository "$REPOSITORY" -with "$work/common" "${binaries[@]}"
printf 'The image is %s\n' "$(cat "$work/image-digest")"
(cd "$DIST" && find . -type f -printf '%9s  %P\n' | sort -k 2)
