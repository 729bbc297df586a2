#!/bin/sh
# Checks everything about a release that needs no compilation: `make release-check`. With RELEASE=v0.1.0 it also requires that the
# tag is the version, that the changelog has its section with a date, that all files are committed, and that no tool is missing.
# It reads the registry of crates, but publishes nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
RELEASE=${RELEASE:-}
ACTIONLINT=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
work=target/release-check
rm -rf "$work/sdist"
mkdir -p "$work/sdist"
status=0

# Runs a command, and shows its output only if it fails.
step() {
    title=$1
    shift
    if "$@" > "$work/log" 2>&1; then
        echo "ok: $title"
    else
        echo "FAILED: $title"
        sed 's/^/    /' "$work/log"
        status=1
    fi
}

# Runs a command if its tool is installed.
step_with() {
    tool=$1
    shift
    if command -v "$tool" > /dev/null; then
        step "$@"
    else
        echo "not checked: $1 ($tool is not installed)"
        [ -z "$RELEASE" ] || status=1
    fi
}

tag() {
    [ "$RELEASE" = "v$version" ] || { echo "the tag is $RELEASE, but Cargo.toml has version $version"; return 1; }
}

actionlint_of_workflows() {
    if command -v actionlint > /dev/null; then
        actionlint
    else
        go run "$ACTIONLINT"
    fi
}

# Packs all crates as for the registry, which resolves them against each other. Uncompiled: that needs `cargo publish --dry-run`.
crates() {
    order=$(scripts/publish-order.py) || return 1
    set -- --no-verify --locked --target-dir "$work"
    [ -n "$RELEASE" ] || set -- "$@" --allow-dirty
    for crate in $order; do
        set -- "$@" --package "$crate"
    done
    cargo package "$@" > "$work/cargo.log" 2>&1 || { cat "$work/cargo.log"; return 1; }
    ! grep -A1 'warning: manifest' "$work/cargo.log" || return 1
    for crate in $order; do
        tar -tzf "$work/package/$crate-$version.crate" > "$work/files" || return 1
        for name in Cargo.toml README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
            grep -q "^$crate-$version/$name\$" "$work/files" || { echo "$crate lacks $name"; return 1; }
        done
    done
    python3 - "$work" "$version" $order << 'END'
import sys, tarfile, tomllib

work, version, *crates = sys.argv[1:]
descriptions = {}
for crate in crates:
    with tarfile.open(f"{work}/package/{crate}-{version}.crate") as archive:
        package = tomllib.load(archive.extractfile(f"{crate}-{version}/Cargo.toml"))["package"]
    missing = {"description", "license", "repository", "readme", "keywords", "categories", "rust-version"} - package.keys()
    if missing:
        sys.exit(f"{crate} lacks {', '.join(sorted(missing))}")
    descriptions[crate] = package["description"]
END
}

# Builds the source distribution and looks whether a build from it would find all that it needs.
sdist() {
    maturin sdist --out "$work/sdist" || return 1
    twine check --strict "$work"/sdist/*.tar.gz || return 1
    tar -C "$work/sdist" -xzf "$work/sdist/raddle-$version.tar.gz" || return 1
    root=$work/sdist/raddle-$version
    for name in LICENSE-MIT LICENSE-APACHE crates/cli/LICENSES-THIRD-PARTY.txt packaging/bundled-libraries.cdx.json \
        scripts/man-and-completions.sh scripts/install-capi.sh python/raddle/__init__.py python/raddle/py.typed; do
        [ -e "$root/$name" ] || { echo "the source distribution lacks $name"; return 1; }
    done
    found=$(find "$root" -name '*.so' -o -name '*.pyc' -o -name '*.h5' -size +100k)
    [ -z "$found" ] || { echo "the source distribution contains $found"; return 1; }
    # The lock file must suit the crates that the source distribution has.
    cargo metadata --locked --format-version 1 --manifest-path "$root/Cargo.toml" > "$work/metadata.json"
}

# Maturin writes the list of Rust packages into wheels; this is the list of C libraries, which it adds.
bill_of_materials() {
    python3 - << 'END'
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open("packaging/bundled-libraries.cdx.json", encoding="utf-8") as file:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
sys.exit(error and str(error))
END
}

lock_files() {
    cargo metadata --locked --format-version 1 > "$work/metadata.json" &&
        cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml > "$work/metadata.json"
}

conda() {
    python3 - << 'END'
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

folder = Path("packaging/conda")
recipe = Stage0Recipe.from_file(folder / "recipe.yaml")
variants = VariantConfig.from_file(folder / "variants.yaml")
for platform in ("linux-64", "linux-aarch64", "osx-arm64"):
    rendered = recipe.render(variants, RenderConfig(platform=PlatformConfig(target_platform=platform)))
    mpis = sorted(variant.variant["mpi"] for variant in rendered)
    assert mpis == ["mpich", "nompi", "openmpi"], mpis
END
}

python_recipes() {
    python3 - << 'END'
from pathlib import Path

for name in ("packaging/spack/package.py", "packaging/easybuild/raddle.eb"):
    compile(Path(name).read_text(encoding="utf-8"), name, "exec")
END
}

# Unquoted on purpose: none of the names has a space.
shell_scripts() {
    # shellcheck disable=SC2046
    shellcheck --severity=warning --exclude=SC2010 $(git ls-files 'scripts/*.sh' scripts/commit-msg)
}

if [ -n "$RELEASE" ]; then
    step "the tag is the version" tag
    step "versions, repository and date agree" scripts/versions.py check --release
    step "the changelog has a section" scripts/changelog-section.py "$version"
else
    step "versions and repository agree" scripts/versions.py check
    step "the changelog has a section" scripts/changelog-section.py Unreleased
fi
step "lock files are up to date" lock_files
step "texts of licences are up to date" scripts/licenses.py check
step_with cargo-deny "licences and sources of dependencies" cargo deny check licenses bans sources
step_with cargo-shear "no unused dependencies" cargo shear --locked
step "list of C libraries is valid CycloneDX" bill_of_materials
step "crates can be packed" crates
step_with maturin "source distribution" sdist
if command -v actionlint > /dev/null; then linter=actionlint; else linter=go; fi
step_with "$linter" "workflows" actionlint_of_workflows
step_with zizmor "security of workflows" zizmor --offline --no-progress .github
step_with check-jsonschema "forms of issues" check-jsonschema --builtin-schema vendor.github-issue-forms \
    .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml .github/ISSUE_TEMPLATE/wrong-result.yml
step_with check-jsonschema "links on the page of new issues" check-jsonschema --builtin-schema vendor.github-issue-config \
    .github/ISSUE_TEMPLATE/config.yml
step_with check-jsonschema "updates of dependencies" check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
step_with check-jsonschema "CITATION.cff" check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff
step_with shellcheck "shell scripts" shell_scripts
step_with hadolint "Dockerfile" hadolint packaging/docker/Dockerfile
step "recipe for conda" conda
step "syntax of the recipes for Spack and EasyBuild" python_recipes
step "packages in the recipe for EasyBuild are up to date" packaging/easybuild/crates.py check
! command -v ruby > /dev/null || step "syntax of the formula for Homebrew" ruby -c packaging/homebrew/raddle.rb
exit $status
