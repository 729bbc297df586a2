# Formula for Homebrew: brew install --build-from-source ./packaging/homebrew/raddle.rb
class Raddle < Formula
  desc "Merges many HDF5 files into one that is laid out for how it will be read"
  homepage "https://github.com/raddle-data/raddle"
  url "https://files.pythonhosted.org/packages/source/r/raddle/raddle-0.1.0.tar.gz"
  # Zeros until the release: scripts/versions.py hash
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  # HDF5 is built in.
  depends_on "cmake" => :build
  depends_on "rust" => :build

  def install
    ENV["CARGO_PROFILE_RELEASE_STRIP"] = "symbols"
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"raddle", "completions")
    system bin/"raddle", "man", buildpath/"man"
    man1.install Dir[buildpath/"man/*.1"]
    doc.install "crates/cli/LICENSES-THIRD-PARTY.txt"
  end

  test do
    system bin/"raddle", "demo", "--only-generate", "--keep", "inputs"
    system bin/"raddle", "merge", "inputs", "-o", "all.h5"
    assert_match "equal", shell_output("#{bin}/raddle verify all.h5 --against inputs")
  end
end
