package netpol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/attack"
)

// Row says where the pods of one namespace can connect to.
type Row struct {
	Namespace string `json:"namespace"`
	// Tenant is whose it is; "" for one of the platform's.
	Tenant string `json:"tenant,omitempty"`
	// Reaches are the namespaces of the matrix that its pods can connect to.
	Reaches []string `json:"reaches"`
	// DNS, Internet and Metadata are the cluster's name servers, an address outside
	// of the cluster, and the address at which a cloud hands out credentials.
	DNS      bool `json:"dns"`
	Internet bool `json:"internet"`
	Metadata bool `json:"metadata"`
}

// Matrix judges connections between all of some namespaces, on one port or, if
// that is 0, on any.
func (m *Map) Matrix(namespaces []string, port int, protocol string) ([]Row, error) {
	rows := make([]Row, 0, len(namespaces))
	for _, from := range namespaces {
		row, err := m.Outside(from)
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

// Outside are the connections of a namespace beyond those of tenants and the platform.
func (m *Map) Outside(namespace string) (Row, error) {
	row := Row{Namespace: namespace, Tenant: m.Tenant(namespace), Reaches: []string{}}
	for _, to := range []struct {
		reached *bool
		flow    attack.Flow
	}{
		{&row.DNS, attack.Flow{ToNamespace: metav1.NamespaceSystem, ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53, Protocol: "UDP"}},
		{&row.Internet, attack.Flow{ToIP: "203.0.113.10", Port: 443, Protocol: "TCP"}},
		{&row.Metadata, attack.Flow{ToIP: "169.254.169.254", Port: 80, Protocol: "TCP"}},
		{&row.Metadata, attack.Flow{ToIP: "fd00:ec2::254", Port: 80, Protocol: "TCP"}},
	} {
		to.flow.FromNamespace = namespace
		allowed, err := m.Allows(to.flow)
		if err != nil {
			return row, err
		}
		*to.reached = *to.reached || allowed
	}
	return row, nil
}
