package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func newConfigMaps(version string, names ...string) *corev1.ConfigMapList {
	l := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, n := range names {
		l.Items = append(l.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: n}, Data: map[string]string{"a": strings.Repeat("b", 300)}})
	}
	return l
}

func listConfigMapNames(l *corev1.ConfigMapList) (names []string) {
	for i := range l.Items {
		names = append(names, l.Items[i].Name)
	}
	return names
}

// TestMerge merges lists in each encoding, and decodes the result as clients do.
func TestMerge(t *testing.T) {
	proto := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	lists := []*corev1.ConfigMapList{newConfigMaps("7", "one", "two"), newConfigMaps("7"), newConfigMaps("7", "three")}
	for contentType, encode := range map[string]func(runtime.Object) ([]byte, error){
		jsonType:     func(o runtime.Object) ([]byte, error) { return json.Marshal(o) },
		protobufType: func(o runtime.Object) ([]byte, error) { return runtime.Encode(proto, o) },
	} {
		m, err := newMerger(contentType)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{2, 0, 1} {
			body, err := encode(lists[i])
			if err != nil {
				t.Fatal(err)
			}
			meta, count, err := m.add(body)
			if err != nil || count != want || meta.ResourceVersion != "7" {
				t.Errorf("%s: list %d has %d items of version %q, %v", contentType, i, count, meta.ResourceVersion, err)
			}
		}
		body, err := m.list(metav1.ListMeta{ResourceVersion: "9", Continue: "more"})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := runtime.Decode(clientgoscheme.Codecs.UniversalDeserializer(), body)
		if err != nil {
			t.Fatalf("%s: %v\n%s", contentType, err, body)
		}
		all := decoded.(*corev1.ConfigMapList)
		if got := strings.Join(listConfigMapNames(all), " "); got != "one two three" || all.ResourceVersion != "9" || all.Continue != "more" || all.Items[2].Data["a"] != lists[2].Items[0].Data["a"] {
			t.Errorf("%s: %s, %+v", contentType, got, all.ListMeta)
		}
	}
}

// TestMergeTables fails if the column definitions are lost, which are only in a table's
// first page.
func TestMergeTables(t *testing.T) {
	m, err := newMerger("application/json;as=Table;v=v1;g=meta.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []metav1.Table{
		{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}},
		{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}, Rows: []metav1.TableRow{{Cells: []any{"one"}}, {Cells: []any{"two"}}}},
		{Rows: []metav1.TableRow{{Cells: []any{"three"}}}},
	} {
		page.Kind, page.APIVersion = "Table", "meta.k8s.io/v1"
		body, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		if _, count, err := m.add(body); err != nil || count != len(page.Rows) {
			t.Errorf("%d rows of %d, %v", count, len(page.Rows), err)
		}
	}
	body, err := m.list(metav1.ListMeta{ResourceVersion: "9"})
	if err != nil {
		t.Fatal(err)
	}
	var all metav1.Table
	if err := json.Unmarshal(body, &all); err != nil || len(all.Rows) != 3 || len(all.ColumnDefinitions) != 1 || all.ResourceVersion != "9" || all.Rows[2].Cells[0] != "three" {
		t.Errorf("%v\n%s", err, body)
	}
}

// TestMergeEmpty fails if merging empty lists results in a list without the field items.
func TestMergeEmpty(t *testing.T) {
	m, err := newMerger(jsonType)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)); err != nil {
		t.Fatal(err)
	}
	body, err := m.list(metav1.ListMeta{ResourceVersion: "1"})
	if want := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}` + "\n"; err != nil || string(body) != want {
		t.Errorf("%s, %v", body, err)
	}
}

// TestMergeableTypes fails if the resulting Accept header names encodings that cannot be
// merged.
func TestMergeableTypes(t *testing.T) {
	for accept, want := range map[string]string{
		"": jsonType, "*/*": jsonType, "application/yaml": jsonType,
		"application/cbor, application/json;q=0.9":                                                                        "application/json;q=0.9",
		"application/vnd.kubernetes.protobuf,application/json":                                                            "application/vnd.kubernetes.protobuf,application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io":                                                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	} {
		if got := selectMergeableTypes([]string{accept}); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
	if _, err := newMerger("application/cbor"); err == nil {
		t.Error("CBOR lists have a merger")
	}
}

// FuzzMerge fails if a response of the API server makes the mergers panic.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"items":[{}]}`))
	f.Add(append(bytes.Clone(protobufPrefix), 10, 2, 1, 2))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, contentType := range []string{jsonType, protobufType} {
			m, err := newMerger(contentType)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := m.add(body); err == nil {
				if _, err := m.list(metav1.ListMeta{}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// FuzzContinueToken decodes continue tokens, which clients can change.
func FuzzContinueToken(f *testing.F) {
	valid, err := continueToken{"shop", "next", "7", "list"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(continuePrefix + "e30")
	f.Fuzz(func(t *testing.T, from string) {
		if got, err := decodeContinue(from); err == nil && strings.HasPrefix(from, continuePrefix) {
			again, err := got.encode()
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := decodeContinue(again); err != nil || twice != got {
				t.Errorf("%+v, then %+v, %v", got, twice, err)
			}
		}
	})
}
