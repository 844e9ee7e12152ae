package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// merger merges the lists of several namespaces into one, independently of their kind.
type merger interface {
	// add appends the items of a list. It returns the list's metadata and its number of
	// items.
	add(body []byte) (metav1.ListMeta, int, error)
	// list returns the encoded list of all items.
	list(metav1.ListMeta) ([]byte, error)
}

// newMerger returns a merger for lists of a media type.
func newMerger(contentType string) (merger, error) {
	switch parseMediaType(contentType) {
	case jsonType:
		return &jsonMerger{}, nil
	case protobufType:
		return &protobufMerger{}, nil
	}
	return nil, errors.New("the API server returned a list as " + contentType + ", which croft proxy cannot merge")
}

func parseMediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return t
}

// selectMergeableTypes reduces an Accept header to the encodings that can be merged: JSON,
// including Table and PartialObjectMetadata, and protobuf.
func selectMergeableTypes(accept []string) string {
	var kept []string
	for _, mediaRange := range strings.Split(strings.Join(accept, ","), ",") {
		if t := parseMediaType(mediaRange); t == jsonType || t == protobufType {
			kept = append(kept, strings.TrimSpace(mediaRange))
		}
	}
	if len(kept) == 0 {
		return jsonType
	}
	return strings.Join(kept, ",")
}

// jsonMerger merges lists and tables in JSON.
type jsonMerger struct {
	first jsonList
	items []json.RawMessage
}

// jsonList is a list or a metav1.Table.
type jsonList struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta   `json:"metadata"`
	Columns         json.RawMessage   `json:"columnDefinitions,omitempty"`
	Rows            []json.RawMessage `json:"rows,omitempty"`
	Items           []json.RawMessage `json:"items,omitempty"`
}

func (m *jsonMerger) add(body []byte) (metav1.ListMeta, int, error) {
	var l jsonList
	if err := json.Unmarshal(body, &l); err != nil {
		return metav1.ListMeta{}, 0, err
	}
	// Only the first page of a table has the column definitions.
	if m.first.Kind == "" || len(m.first.Columns) == 0 {
		m.first = l
	}
	items := append(l.Items, l.Rows...) //nolint:gocritic // a list has one or the other
	m.items = append(m.items, items...)
	return l.Metadata, len(items), nil
}

func (m *jsonMerger) list(meta metav1.ListMeta) ([]byte, error) {
	var b bytes.Buffer
	head := m.first
	head.Metadata, head.Items, head.Rows = meta, nil, nil
	start, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	// The items are copied as received: encoding them again would dominate the cost.
	b.Write(bytes.TrimSuffix(start, []byte("}")))
	if head.Kind == "Table" {
		b.WriteString(`,"rows":[`)
	} else {
		b.WriteString(`,"items":[`)
	}
	for i, item := range m.items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	b.WriteString("]}\n")
	return b.Bytes(), nil
}

// protobufPrefix starts each message (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var protobufPrefix = []byte("k8s\x00")

// The field numbers of every list type in Kubernetes' protobuf.
const (
	metadataField protowire.Number = 1
	itemsField    protowire.Number = 2
)

// protobufMerger merges lists in protobuf.
type protobufMerger struct {
	kind  runtime.TypeMeta
	items []byte
}

// decodeEnvelope decodes the runtime.Unknown that wraps each protobuf message.
func decodeEnvelope(body []byte) (*runtime.Unknown, error) {
	message, ok := bytes.CutPrefix(body, protobufPrefix)
	if !ok {
		return nil, errors.New("the API server's response is not a Kubernetes protobuf message")
	}
	unknown := &runtime.Unknown{}
	return unknown, unknown.Unmarshal(message)
}

func (m *protobufMerger) add(body []byte) (meta metav1.ListMeta, count int, err error) {
	unknown, err := decodeEnvelope(body)
	if err != nil {
		return meta, 0, err
	}
	m.kind = unknown.TypeMeta
	for rest := unknown.Raw; len(rest) > 0; {
		number, kind, size := protowire.ConsumeTag(rest)
		if size < 0 {
			return meta, 0, protowire.ParseError(size)
		}
		value := protowire.ConsumeFieldValue(number, kind, rest[size:])
		if value < 0 {
			return meta, 0, protowire.ParseError(value)
		}
		if number == metadataField {
			content, _ := protowire.ConsumeBytes(rest[size:])
			if err := meta.Unmarshal(content); err != nil {
				return meta, 0, err
			}
		}
		if number == itemsField {
			m.items = append(m.items, rest[:size+value]...)
			count++
		}
		rest = rest[size+value:]
	}
	return meta, count, nil
}

func (m *protobufMerger) list(meta metav1.ListMeta) ([]byte, error) {
	head, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	raw := protowire.AppendTag(make([]byte, 0, len(head)+len(m.items)+8), metadataField, protowire.BytesType)
	raw = append(protowire.AppendBytes(raw, head), m.items...)
	message, err := (&runtime.Unknown{TypeMeta: m.kind, Raw: raw}).Marshal()
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(protobufPrefix), message...), nil
}

// forbiddenBuffer is a ResponseWriter that buffers 403 responses. It sends all other
// responses immediately.
type forbiddenBuffer struct {
	http.ResponseWriter
	header http.Header
	body   bytes.Buffer
	status int
}

// Header implements http.ResponseWriter.
func (f *forbiddenBuffer) Header() http.Header { return f.header }

// isBuffered reports whether the response was buffered.
func (f *forbiddenBuffer) isBuffered() bool { return f.status == http.StatusForbidden }

// WriteHeader implements http.ResponseWriter.
func (f *forbiddenBuffer) WriteHeader(status int) {
	if f.status = status; f.isBuffered() {
		return
	}
	f.send()
}

func (f *forbiddenBuffer) send() {
	for name, values := range f.header {
		f.ResponseWriter.Header()[name] = values
	}
	f.ResponseWriter.WriteHeader(f.status)
}

// Write implements http.ResponseWriter.
func (f *forbiddenBuffer) Write(b []byte) (int, error) {
	if f.status == 0 {
		f.WriteHeader(http.StatusOK)
	}
	if f.isBuffered() {
		return f.body.Write(b)
	}
	return f.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush responses that are not buffered.
func (f *forbiddenBuffer) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// FlushError implements the Flush method of http.ResponseController. It does nothing for a
// buffered response.
func (f *forbiddenBuffer) FlushError() error {
	if f.status == 0 || f.isBuffered() {
		return nil
	}
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// release sends the buffered response.
func (f *forbiddenBuffer) release() {
	f.send()
	_, _ = f.ResponseWriter.Write(f.body.Bytes()) // fails only if the client has disconnected
}
