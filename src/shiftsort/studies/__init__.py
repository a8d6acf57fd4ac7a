"""Looking at the operator and at models: pictures and measurements that explain."""
