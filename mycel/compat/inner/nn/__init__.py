"""`mindspore.nn`: what its modules show of their own machinery."""
