"""What the model of a run takes: images, vectors, or images that an encoder turns into vectors."""

from dividemix.model.encoded_input import EncodedInput, Input
from dividemix.model.inputs import ImageInput, VectorInput
from dividemix.planning.encoding import encoder_of
from dividemix.planning.job import Job
from dividemix.planning.material import Material


def model_input(job: Job, material: Material) -> Input:
    """The input of the job's nets, from raw samples as the data has them."""
    if material.kind == "images":
        return ImageInput(material.shape, material.mean, material.std, job.settings.crop_size)
    vectors = VectorInput(material.mean, material.std)
    encoder = encoder_of(job)
    if material.encoding is None or encoder is None:
        return vectors
    return EncodedInput(material.encoding.images.train_images.shape[1:], material.encoding.encoder, encoder, vectors)
