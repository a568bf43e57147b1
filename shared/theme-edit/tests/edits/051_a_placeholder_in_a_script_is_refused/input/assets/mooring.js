function moor() {
  tie();
}
