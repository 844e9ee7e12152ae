aws ec2 create-subnet-cidr-reservation --subnet-id 'subnet-0a4' --cidr '10.0.4.32/27' --reservation-type explicit \
  --description 'croft: pods of network n4 in us-west-2a' \
  --tag-specifications 'ResourceType=subnet-cidr-reservation,Tags=[{Key=croft.dev/network,Value=n4}]'
aws ec2 create-subnet-cidr-reservation --subnet-id 'subnet-0b4' --cidr '10.0.5.32/27' --reservation-type explicit \
  --description 'croft: pods of network n4 in us-west-2b' \
  --tag-specifications 'ResourceType=subnet-cidr-reservation,Tags=[{Key=croft.dev/network,Value=n4}]'
aws ec2 create-subnet-cidr-reservation --subnet-id 'subnet-0a6' --cidr '10.0.6.32/27' --reservation-type explicit \
  --description 'croft: pods of network n6 in us-west-2a' \
  --tag-specifications 'ResourceType=subnet-cidr-reservation,Tags=[{Key=croft.dev/network,Value=n6}]'
aws ec2 create-subnet-cidr-reservation --subnet-id 'subnet-0b6' --cidr '10.0.7.32/27' --reservation-type explicit \
  --description 'croft: pods of network n6 in us-west-2b' \
  --tag-specifications 'ResourceType=subnet-cidr-reservation,Tags=[{Key=croft.dev/network,Value=n6}]'
