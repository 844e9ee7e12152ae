package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/document"
)

// bom is the list of modules in a binary.
type bom struct {
	goVersion string
	main      string
	modules   []debug.Module
}

// bomOf reads the build information that the linker has stored in the binary.
func bomOf(binary string) (bom, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return bom{}, err
	}
	b := bom{goVersion: info.GoVersion, main: info.Main.Path}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		b.modules = append(b.modules, *m)
	}
	return b, nil
}

// These are the parts of SPDX 2.3 that are written.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID         string          `json:"SPDXID"`
		Name       string          `json:"name"`
		Version    string          `json:"versionInfo"`
		Download   string          `json:"downloadLocation"`
		Analyzed   bool            `json:"filesAnalyzed"`
		References []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// writeSPDX writes the bill of materials of all binaries as one SPDX document. Its name is the
// image's digest. Like the image, it does not contain the time of the build.
func writeSPDX(to, version, digest string, boms []bom) error {
	const root = "SPDXRef-croft"
	document := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "croft " + version,
		Namespace: "https://croft.dev/spdx/" + strings.ReplaceAll(digest, ":", "-"),
		Creation:  spdxCreation{Created: epoch.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: croft-hack-image"}},
		Packages: []spdxPackage{{ID: root, Name: boms[0].main, Version: version, Download: "NOASSERTION", References: []spdxReference{
			purl("pkg:oci/croft@" + strings.ReplaceAll(digest, ":", "%3A")),
		}}},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", root}},
	}
	all := map[string]spdxPackage{}
	for _, b := range boms {
		for _, m := range append(b.modules, debug.Module{Path: "stdlib", Version: strings.TrimPrefix(b.goVersion, "go")}) {
			id := fmt.Sprintf("SPDXRef-%s-%s", spdxID(m.Path), spdxID(m.Version))
			all[id] = spdxPackage{
				ID: id, Name: m.Path, Version: m.Version, Download: "NOASSERTION",
				References: []spdxReference{purl("pkg:golang/" + m.Path + "@" + m.Version)},
			}
		}
	}
	ids := make([]string, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		document.Packages = append(document.Packages, all[id])
		document.Relationships = append(document.Relationships, spdxRelationship{root, "CONTAINS", id})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o600)
}

func purl(locator string) spdxReference {
	return spdxReference{Category: "PACKAGE-MANAGER", Type: "purl", Locator: locator}
}

// spdxID replaces characters that an SPDX identifier may not contain.
func spdxID(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, text)
}
