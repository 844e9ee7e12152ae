package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/network/journal"
)

// journals is a list of files with nodes' logs.
type journals []nodeLog

type nodeLog struct {
	node string
	file *os.File
}

// openJournals opens the files of --journal. It runs before any request to the cluster, so
// that a mistake in the flag shows first.
func openJournals(flags []string) (all journals, err error) {
	for _, f := range flags {
		node, path, is := strings.Cut(f, "=")
		if !is || node == "" || path == "" {
			all.close()
			return nil, fmt.Errorf("--journal %s: write NODE=FILE, a node's name and a file of its logs", f)
		}
		file, err := os.Open(path)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("--journal %w", explainFileError(path, err))
		}
		all = append(all, nodeLog{node, file})
	}
	return all, nil
}

func (j journals) close() {
	for _, l := range j {
		_ = l.file.Close()
	}
}

// readBootTimes finds the times of nodes' boots in their logs.
func (j journals) readBootTimes(nodes []corev1.Node) (map[string]boot.Times, error) {
	logs := map[string]*boot.Log{}
	created := map[string]time.Time{}
	for _, l := range j {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == l.node })
		if i < 0 {
			return nil, fmt.Errorf("--journal %s: the cluster has no such node", l.node)
		}
		created[l.node] = nodes[i].CreationTimestamp.Time
		if logs[l.node] == nil {
			logs[l.node] = &boot.Log{}
		}
		if err := readLog(logs[l.node], l.file, created[l.node]); err != nil {
			return nil, fmt.Errorf("--journal %s: %w", l.file.Name(), err)
		}
	}
	times := map[string]boot.Times{}
	for node, log := range logs {
		if times[node] = log.Boot(created[node]); len(times[node]) == 0 {
			return nil, fmt.Errorf("--journal %s: the logs have no events of a boot before %s, when the node "+
				"registered; on the node, journalctl -o short-iso-precise prints all logs", node,
				created[node].UTC().Format(time.RFC3339))
		}
	}
	return times, nil
}

// readLog adds the lines of a file, which is either a text file or a journal file.
func readLog(log *boot.Log, file *os.File, created time.Time) error {
	begin := make([]byte, len(journal.Signature))
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.Equal(begin[:n], []byte(journal.Signature)) {
		return journal.Read(file, time.Time{}, created.Add(boot.After), func(e journal.Entry) {
			log.Add(boot.Line{Time: e.Time, Source: e.Identifier, Text: e.Message})
		})
	}
	timed, err := log.Read(file, created)
	if err == nil && timed == 0 {
		err = errors.New("no line of the file has a time: use output of journalctl -o short-iso-precise, " +
			"/var/log/messages or cloud-init's logs")
	}
	return err
}
