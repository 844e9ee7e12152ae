// Command release packs a release: an archive for each platform, a krew manifest, a Homebrew
// formula, and the checksums of all that is published. `make release` builds the files and
// calls it.
//
// Its output depends on its inputs only: the same files result in identical archives.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// release is one version of croft.
type release struct {
	// Version begins with a v, like its Git tag.
	Version string
	// Repository is OWNER/NAME on GitHub, where the archives are published.
	Repository string
	// Archives are sorted by name.
	Archives []archive
}

// archive is a released file for one platform.
type archive struct {
	OS, Arch string
	// Name is the name of the file.
	Name string
	// SHA256 is the file's digest in hexadecimal.
	SHA256 string
}

// Binary returns the name of the croft binary in the archive.
func (a archive) Binary() string {
	if a.OS == windows {
		return "croft.exe"
	}
	return "croft"
}

// URL returns the download URL of an archive.
func (r release) URL(a archive) string {
	return fmt.Sprintf("https://github.com/%s/releases/download/%s/%s", r.Repository, r.Version, a.Name)
}

// Number returns the version without the v, as Homebrew writes it.
func (r release) Number() string { return strings.TrimPrefix(r.Version, "v") }

const windows = "windows"

var (
	versions     = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	repositories = regexp.MustCompile(`^[\w.-]+/[\w.-]+$`)
	platforms    = regexp.MustCompile(`^([a-z0-9]+)/([a-z0-9]+)=(.+)$`)
)

func main() {
	to := flag.String("o", "dist", "the directory to write into; files that are there already get a checksum, too")
	version := flag.String("version", "", "the release's version, such as v0.2.0")
	repository := flag.String("repository", "", "the repository on GitHub that publishes it, as OWNER/NAME")
	common := flag.String("with", "", "a directory whose files are added to every archive")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: release [flags] OS/ARCHITECTURE=BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*to, release{Version: *version, Repository: *repository}, *common, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(2)
	}
}

// run writes all files to a directory.
func run(to string, r release, common string, binaries []string) error {
	switch {
	case !versions.MatchString(r.Version):
		return fmt.Errorf("-version %q: write vMAJOR.MINOR.PATCH", r.Version)
	case !repositories.MatchString(r.Repository):
		return fmt.Errorf("-repository %q: write OWNER/NAME", r.Repository)
	case len(binaries) == 0:
		return fmt.Errorf("no binary: write OS/ARCHITECTURE=BINARY")
	}
	for _, each := range binaries {
		parts := platforms.FindStringSubmatch(each)
		if parts == nil {
			return fmt.Errorf("%q: write OS/ARCHITECTURE=BINARY", each)
		}
		packed, err := pack(to, archive{OS: parts[1], Arch: parts[2]}, r.Version, common, parts[3])
		if err != nil {
			return fmt.Errorf("%s: %w", each, err)
		}
		r.Archives = append(r.Archives, packed)
	}
	for name, text := range map[string]string{"krew/croft.yaml": krew, "homebrew/croft.rb": homebrew} {
		if err := r.fill(filepath.Join(to, name), text); err != nil {
			return err
		}
	}
	return writeChecksums(to)
}
