// Package instancetypes provides EC2's instance types to Karpenter's kwok
// provider, with their real names, sizes and on-demand prices in us-west-2.
//
// The table was generated from the provider's own example file. That file has the architecture
// x86_64, while nodes and pools have amd64, and lists each type once for each operating system.
package instancetypes

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

//go:embed aws.csv
var table string

// DefaultZones are the zones of the price table's region.
var DefaultZones = []string{"us-west-2a", "us-west-2b", "us-west-2c"}

// SpotDiscount is the price of a spot instance relative to an on-demand instance. Real prices
// vary by the hour; the sandbox needs only that they are lower.
const SpotDiscount = 0.7

// ephemeralStorage is the default root volume of an EKS node.
const ephemeralStorage = "20Gi"

var name = regexp.MustCompile(`^[a-z]+[0-9][a-z]*\.[a-z0-9]+$`)

// Type is one row of the table.
type Type struct {
	Name, Arch        string
	CPU, Memory, Pods resource.Quantity
	Price             float64 // USD an hour, on demand
}

// ReadTable returns all types, by family and size.
func ReadTable() ([]Type, error) {
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the table of instance types: %w", err)
	}
	types := make([]Type, 0, len(rows)-1)
	for _, row := range rows[1:] {
		t, err := parseType(row)
		if err != nil {
			return nil, fmt.Errorf("the table of instance types: %s: %w", row[0], err)
		}
		types = append(types, t)
	}
	return types, nil
}

func parseType(row []string) (t Type, err error) {
	t.Name, t.Arch = row[0], row[1]
	if !name.MatchString(t.Name) {
		return t, errors.New("the name is not of the form <family>.<size>")
	}
	for i, q := range []*resource.Quantity{&t.CPU, &t.Memory, &t.Pods} {
		if *q, err = resource.ParseQuantity(row[2+i]); err != nil {
			return t, err
		}
	}
	t.Price, err = strconv.ParseFloat(row[5], 64)
	return t, err
}

// EncodeJSON renders the table in the format of the provider's
// --instance-types-file-path, with every type on offer in every zone, both on
// demand and as spot.
func EncodeJSON(zones []string) ([]byte, error) {
	types, err := ReadTable()
	if err != nil {
		return nil, err
	}
	out := make([]instanceType, 0, len(types))
	for _, t := range types {
		out = append(out, expandType(t, zones))
	}
	return json.Marshal(out)
}

type instanceType struct {
	Name             string              `json:"name"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []corev1.OSName     `json:"operatingSystems"`
	Resources        corev1.ResourceList `json:"resources"`
	Offerings        []offering          `json:"offerings"`
}

// The provider reads offerings without tags: the names are those of its Go fields.
type offering struct {
	Price        float64
	Available    bool
	Requirements []corev1.NodeSelectorRequirement
}

func expandType(t Type, zones []string) instanceType {
	it := instanceType{
		Name:             t.Name,
		Architecture:     t.Arch,
		OperatingSystems: []corev1.OSName{corev1.Linux},
		Resources: corev1.ResourceList{
			corev1.ResourceCPU:              t.CPU,
			corev1.ResourceMemory:           t.Memory,
			corev1.ResourcePods:             t.Pods,
			corev1.ResourceEphemeralStorage: resource.MustParse(ephemeralStorage),
		},
	}
	labels := buildAWSLabels(t)
	for _, zone := range zones {
		for _, capacity := range []struct {
			kind  string
			price float64
		}{{"on-demand", t.Price}, {"spot", t.Price * SpotDiscount}} {
			it.Offerings = append(it.Offerings, offering{
				Price:     capacity.price,
				Available: true,
				Requirements: append([]corev1.NodeSelectorRequirement{
					requireValue("karpenter.sh/capacity-type", capacity.kind),
					requireValue(corev1.LabelTopologyZone, zone),
				}, labels...),
			})
		}
	}
	return it
}

// buildAWSLabels returns the labels that Karpenter's AWS provider sets on nodes and supports in
// NodePools. The kwok provider has no labels of types, but it sets an offering's requirements
// as labels on nodes, and supports them in NodePools: a NodePool for AWS selects the same types
// here.
func buildAWSLabels(t Type) []corev1.NodeSelectorRequirement {
	family, size, _ := strings.Cut(t.Name, ".")
	// m6id: category m, generation 6.
	digit := strings.IndexAny(family, "0123456789")
	category, generation := family[:digit], family[digit:digit+1]
	const prefix = "karpenter.k8s.aws/instance-"
	return []corev1.NodeSelectorRequirement{
		requireValue(prefix+"category", category),
		requireValue(prefix+"generation", generation),
		requireValue(prefix+"family", family),
		requireValue(prefix+"size", size),
		requireValue(prefix+"cpu", t.CPU.String()),
		requireValue(prefix+"memory", strconv.FormatInt(t.Memory.Value()>>20, 10)),
	}
}

func requireValue(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}
