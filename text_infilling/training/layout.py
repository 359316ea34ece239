"""Names of the files that a training leaves in its folder; imports nothing, so that looking for them costs nothing."""

WEIGHTS = "best.weights.h5"
RESUME_POINT = "resume.npz"
TENSORBOARD = "tensorboard"
