package netpol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/rules/attack"
)

// Row lists the destinations that the pods of one namespace can connect to.
type Row struct {
	Namespace string `json:"namespace"`
	// Tenant is the namespace's tenant, or "" for a namespace of the platform.
	Tenant string `json:"tenant,omitempty"`
	// Reaches are the namespaces of the matrix that its pods can connect to.
	Reaches []string `json:"reaches"`
	// DNS, Internet and Metadata report whether pods can connect to the cluster's name
	// servers, to an address outside of the cluster, and to an address at which a cloud
	// serves credentials.
	DNS      bool `json:"dns"`
	Internet bool `json:"internet"`
	Metadata bool `json:"metadata"`
}

// Matrix evaluates connections between all of the given namespaces, on one port or, if it is
// 0, on any port.
func (m *Map) Matrix(namespaces []string, port int, protocol string) ([]Row, error) {
	rows := make([]Row, 0, len(namespaces))
	for _, from := range namespaces {
		row, err := m.EvaluateOutside(from)
		if err != nil {
			return nil, err
		}
		for _, to := range namespaces {
			verdict, err := m.Connects(from, to, port, protocol)
			if err != nil {
				return nil, err
			}
			if verdict.Allowed {
				row.Reaches = append(row.Reaches, to)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// EvaluateOutside evaluates the connections of a namespace to destinations outside of the matrix.
func (m *Map) EvaluateOutside(namespace string) (Row, error) {
	row := Row{Namespace: namespace, Tenant: m.Tenant(namespace), Reaches: []string{}}
	outside, err := m.ExplainOutside(namespace)
	for _, o := range outside {
		switch o.Name {
		case DNS:
			row.DNS = o.Verdict.Allowed
		case Internet:
			row.Internet = o.Verdict.Allowed
		case Metadata:
			row.Metadata = row.Metadata || o.Verdict.Allowed
		}
	}
	return row, err
}

// The destinations outside of the matrix.
const (
	DNS      = "DNS"
	Internet = "internet"
	Metadata = "metadata"
)

// Outside is the verdict about a destination outside of the matrix.
type Outside struct {
	Name    string
	Verdict Verdict
}

// ExplainOutside evaluates the connections of a namespace to destinations outside of the matrix, with
// the policies that decide. A cloud serves metadata at two addresses.
func (m *Map) ExplainOutside(namespace string) ([]Outside, error) {
	var all []Outside
	for _, to := range []struct {
		name string
		flow attack.Flow
	}{
		{DNS, attack.Flow{ToNamespace: metav1.NamespaceSystem, ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53, Protocol: "UDP"}},
		{Internet, attack.Flow{ToIP: "203.0.113.10", Port: 443, Protocol: "TCP"}},
		{Metadata, attack.Flow{ToIP: "169.254.169.254", Port: 80, Protocol: "TCP"}},
		{Metadata, attack.Flow{ToIP: "fd00:ec2::254", Port: 80, Protocol: "TCP"}},
	} {
		to.flow.FromNamespace = namespace
		verdict, err := m.Evaluate(to.flow)
		if err != nil {
			return nil, err
		}
		all = append(all, Outside{to.name, verdict})
	}
	return all, nil
}
