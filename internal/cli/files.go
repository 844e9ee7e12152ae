package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// maxFile is the maximum size of one file; estate checks its content.
const maxFile = 64 << 20

// fileFlags is the flag -f, with kubectl's meaning.
type fileFlags struct {
	names []string
	// whole means that the files contain every desired pool, tenant and network.
	whole bool
}

func (f *fileFlags) addFlags(c *cobra.Command) {
	c.Flags().StringSliceVarP(&f.names, "filename", "f", nil, "croft.yaml, a stream of croft's objects, a directory of either, or - for standard input")
	if err := c.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag was added in the line above
	}
}

// parse reads all files. It reports every problem, not only the first.
func (f *fileFlags) parse(in io.Reader) (*manifest.Declaration, error) {
	whole := &manifest.Declaration{Now: time.Now()}
	var problems document.Problems
	for _, name := range f.names {
		files, err := listFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := readFile(file, in)
			if err != nil {
				return nil, err
			}
			open := newFileOpener(file)
			if file == "-" {
				file = "standard input"
			}
			d, found := manifest.ParseWith(file, data, open)
			problems = append(problems, found...)
			whole.Add(d)
		}
	}
	if len(problems) > 0 {
		// The files together may have further problems; all are reported at once.
		_, more := estate.Build(whole)
		return nil, append(problems, more...)
	}
	return whole, nil
}

// buildEstate reads all files and checks them together.
func (f *fileFlags) buildEstate(in io.Reader) (*estate.Estate, error) {
	_, e, err := f.loadEstate(in)
	return e, err
}

// loadEstate is like build, and also returns the declarations.
func (f *fileFlags) loadEstate(in io.Reader) (*manifest.Declaration, *estate.Estate, error) {
	d, err := f.parse(in)
	if err != nil {
		return nil, nil, err
	}
	e, problems := estate.Build(d)
	return d, e, problems.Err()
}

// listFiles lists the files of a directory, without its subdirectories, as kubectl does
// without --recursive.
func listFiles(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, explainFileError(name, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, explainFileError(name, err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no .yaml, .yml or .json file in this directory", name)
	}
	return files, nil
}

// newFileOpener returns a function that opens files relative to the file that names them. Standard
// input cannot name files.
func newFileOpener(file string) manifest.Open {
	if file == "-" {
		return nil
	}
	return func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		return readFile(path, nil)
	}
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return readLimited(in, "standard input")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, explainFileError(name, err)
	}
	defer file.Close()
	return readLimited(file, name)
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return nil, explainFileError(name, err)
	}
	return data, nil
}

// explainFileError turns the error of an unreadable file into a user-facing message.
func explainFileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no such file", name)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: cannot be read: %w", name, err)
}
