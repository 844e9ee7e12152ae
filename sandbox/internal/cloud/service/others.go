package service

import (
	"crypto/md5" //nolint:gosec // what SQS signs messages with
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

type callerIdentity struct {
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
	Account string `xml:"Account"`
}

func (s *Services) getCallerIdentity(*wire.Request) (any, error) {
	return callerIdentity{s.account.Principal(false), "AROACROFTSIMULATED:session", account.ID}, nil
}

type decodedMessage struct {
	Message string `xml:"DecodedMessage"`
}

func (*Services) decodeAuthorizationMessage(r *wire.Request) (any, error) {
	message, err := account.DecodeDenial(r.Params.String("EncodedMessage"))
	if err != nil {
		return nil, &wire.Error{Code: "InvalidAuthorizationMessageException",
			Message: "The message has been tampered with or was not encoded by this service."}
	}
	return decodedMessage{message}, nil
}

func (s *Services) getParameter(r *wire.Request) (any, error) {
	var asked struct{ Name string }
	if err := r.Decode(&asked); err != nil {
		return nil, err
	}
	value, err := s.account.GetParameter(asked.Name)
	if err != nil {
		return nil, err
	}
	if value == "" {
		return nil, &wire.Error{Code: "ParameterNotFound", Message: "parameter " + asked.Name + " does not exist"}
	}
	return map[string]any{"Parameter": map[string]any{"Name": asked.Name, "Type": "String", "Value": value, "Version": 1}}, nil
}

func (s *Services) describeCluster(r *wire.Request) (any, error) {
	name := strings.TrimPrefix(r.Path, "/clusters/")
	if name != s.account.Cluster {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Status: http.StatusNotFound, Message: "No cluster found for name: " + name + "."}
	}
	return map[string]any{"cluster": map[string]any{
		"name": name, "arn": s.account.ARN("eks", "cluster/"+name), "status": "ACTIVE",
		"version": s.cluster.Version, "endpoint": s.cluster.Endpoint,
		"certificateAuthority":    map[string]any{"data": s.cluster.CA},
		"kubernetesNetworkConfig": map[string]any{"serviceIpv4Cidr": s.cluster.ServiceRange, "ipFamily": "ipv4"},
	}}, nil
}

// getProducts returns the prices of all types for every filter. Karpenter also requests the
// prices of bare metal, which is not available here, and needs a non-empty answer.
func (*Services) getProducts(*wire.Request) (any, error) {
	var list []string
	for _, t := range account.Types() {
		product, err := json.Marshal(map[string]any{
			"product": map[string]any{"attributes": map[string]any{"instanceType": t.Name}},
			"terms": map[string]any{"OnDemand": map[string]any{"term": map[string]any{
				"priceDimensions": map[string]any{"hour": map[string]any{
					"pricePerUnit": map[string]any{"USD": strconv.FormatFloat(t.Price, 'f', 10, 64)},
				}},
			}}},
		})
		if err != nil {
			return nil, err
		}
		list = append(list, string(product))
	}
	return map[string]any{"FormatVersion": "aws_v1", "PriceList": list}, nil
}

func (s *Services) getQueueURL(r *wire.Request) (any, error) {
	var asked struct{ QueueName string }
	if err := r.Decode(&asked); err != nil {
		return nil, err
	}
	if asked.QueueName != s.cluster.Queue {
		return nil, &wire.Error{Code: "QueueDoesNotExist", Message: "The specified queue does not exist."}
	}
	return map[string]any{"QueueUrl": "http://" + r.Host + "/" + account.ID + "/" + asked.QueueName}, nil
}

type sqsMessage struct {
	MessageID     string            `json:"MessageId"`
	ReceiptHandle string            `json:"ReceiptHandle"`
	Body          string            `json:"Body"`
	MD5           string            `json:"MD5OfBody"`
	Attributes    map[string]string `json:"Attributes"`
}

// receiveMessage waits for a message as long as the call allows.
func (s *Services) receiveMessage(r *wire.Request) (any, error) {
	asked := struct{ MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds int }{MaxNumberOfMessages: 1}
	if err := r.Decode(&asked); err != nil {
		return nil, err
	}
	over := time.After(time.Duration(asked.WaitTimeSeconds) * time.Second)
	for {
		changed := s.account.WatchChange()
		received, err := s.account.ReceiveMessages(asked.MaxNumberOfMessages, time.Duration(asked.VisibilityTimeout)*time.Second)
		if err != nil {
			return nil, err
		}
		if len(received) > 0 {
			return map[string]any{"Messages": toSQSMessages(received)}, nil
		}
		select {
		case <-changed:
		case <-over:
			return map[string]any{}, nil
		case <-r.Gone:
			return map[string]any{}, nil
		}
	}
}

func toSQSMessages(received []account.Message) []sqsMessage {
	out := make([]sqsMessage, 0, len(received))
	for _, m := range received {
		sum := md5.Sum([]byte(m.Body)) //nolint:gosec // see above
		out = append(out, sqsMessage{m.ID, m.Receipt, m.Body, hex.EncodeToString(sum[:]),
			map[string]string{"SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10)}})
	}
	return out
}

func (s *Services) deleteMessage(r *wire.Request) (any, error) {
	var asked struct{ ReceiptHandle string }
	if err := r.Decode(&asked); err != nil {
		return nil, err
	}
	return map[string]any{}, s.account.DeleteMessage(asked.ReceiptHandle)
}
